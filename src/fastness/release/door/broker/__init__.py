"""The key broker: the KBS protocol over TLS, its administration, and introspection of tokens.

* `routes.py`: every way in, with what a caller must show.
* `app.py`: a request from the door to the answer; limits, guards, refusals.
* `kbs.py`: the three steps of machines. `admin.py`: what administrators write. `introspect.py`: what our own parts ask.
* `settings.py`: what the cluster demands, as it is now. `limits.py`: how much one caller and all together may take.
* `server.py`: all of it as one thing that opens and closes.
"""
