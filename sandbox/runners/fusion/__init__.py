"""The runner behind a SandboxFusion service."""
