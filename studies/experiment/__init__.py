"""A study: arms side by side over seeds, run, summed up and drawn."""
