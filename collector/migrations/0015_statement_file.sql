-- One row = a form of an issued statement as it went out: the same bytes for ever, whatever program reads the file
-- later. form = html | csv | json; language NULL = it has none. A PDF is printed from the HTML.
CREATE TABLE statement_file (
  issue_id VARCHAR NOT NULL, form VARCHAR NOT NULL, language VARCHAR, content BLOB NOT NULL);
