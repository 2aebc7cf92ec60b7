"""What verl 0.9.1 and vLLM need to train on a machine without a GPU.

Only ``environment`` is imported on a GPU machine: it lists the process environment that the others assume.
``verl_platform`` registers a verl platform and replaces the one function of verl that has to be, ``vllm_worker`` keeps
vLLM's weights loadable, ``sft`` starts verl's SFT trainer. ``../engine.py`` is the FSDP2 engine of both devices.
"""
