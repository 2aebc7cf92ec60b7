"""What verl 0.9.1 and vLLM need to train on a machine without a GPU.

Nothing here is imported on a GPU machine. ``verl_platform`` registers a verl platform and replaces the one function of
verl that has to be, ``engine`` registers an FSDP2 engine, ``vllm_worker`` keeps vLLM's weights loadable, ``sft`` starts
verl's SFT trainer. ``environment`` lists the process environment that all of them assume.
"""
