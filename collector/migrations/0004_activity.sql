-- One row = measured activity of a part of held time: the roll-up that rebuilds an hour once raw samples are gone.
-- active_ppm_us = microseconds x parts per million of occupied time, over all devices of the part.
CREATE TABLE activity_hour (
  cluster VARCHAR NOT NULL, hour TIMESTAMP NOT NULL, node VARCHAR NOT NULL, gpu_model VARCHAR NOT NULL,
  gpu_uuid VARCHAR, mig_uuid VARCHAR, run_id VARCHAR NOT NULL,
  since TIMESTAMP NOT NULL, until TIMESTAMP NOT NULL, measured_us BIGINT NOT NULL, active_ppm_us BIGINT NOT NULL);
