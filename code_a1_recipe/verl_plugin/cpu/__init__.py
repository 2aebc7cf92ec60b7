"""Support for training with verl 0.9.1 and vLLM on a machine without a GPU.

``environment`` lists the environment variables that the other modules assume. A GPU machine imports ``environment``
alone. ``verl_platform`` registers a verl platform and replaces one function of verl. ``vllm_worker`` keeps vLLM's
weights loadable. ``sft`` starts verl's SFT trainer. ``../engine.py`` has the FSDP2 engine for CPUs and GPUs.
"""
