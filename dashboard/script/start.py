"""What Streamlit runs. In a folder of its own: beside a folder named pages, Streamlit would guess a
navigation from the files and run a page without what `main.py` puts around it, if a page's link
were the first one that is opened.
"""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).parents[1] / "main.py"))
