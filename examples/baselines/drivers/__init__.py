"""Programs that the tools' own interpreters run; none of them imports anything of this project."""
