"""The interactive shell: a prompt, commands that begin with a backslash, completion, paging."""
