-- One row = how near two GPUs of a node are over PCIe while [valid_from, valid_to): SAME board, PIX one switch, PXB several,
-- PHB one host bridge, NODE one NUMA node, SYS across sockets. Each pair once, the smaller UUID first.
CREATE TABLE gpu_near (
  cluster VARCHAR NOT NULL, node VARCHAR NOT NULL, gpu_uuid VARCHAR NOT NULL, peer_uuid VARCHAR NOT NULL,
  level VARCHAR NOT NULL, valid_from TIMESTAMP NOT NULL, valid_to TIMESTAMP, source VARCHAR NOT NULL);
