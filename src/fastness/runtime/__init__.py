"""What everything long-running needs: time, background tasks, retries, bounded caches, the one base of errors.

cache.py     A mapping that forgets: the one bounded cache
clock.py     Time and entropy as arguments
deployed.py  Files that come with the program and are no code: units and the dracut module of images
errors.py    The one base of our errors: a sentence, a stable code, and what to do about it
memory.py    The garbage collector: it comes rarely, and leaves alone what a program made while starting
retries.py   Trying again: how long to wait, how long the other side asks one to wait, and the loop
tasks.py     Waiting for news or for a time, and tasks beside a block
"""
