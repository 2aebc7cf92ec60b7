"""Which rule makes the Test LLM an adversary that is worth its time? Studies and their table."""
