"""Rego with its traps closed, asked in a process of its own.

builtins.py      Which built-in functions a policy may call
engine.py        The Rego engine, with its traps closed
sandbox.py       A process for texts of users: started when needed, bounded, ended at any moment without harm
system_calls.py  Which calls of the kernel a process that only computes may still make (seccomp)
tasks.py         What can be asked of a process for policies, a function elsewhere by its name, and how: in frames over a pipe
worker.py        The process in which policies of users run: one question after the other, and nothing else
"""
