"""The files of a run (folder, metrics, rollout records), and the reader of these files."""
