"""What keeps a process from doing anything but compute: rlimits, Landlock, seccomp, namespaces."""
