"""What the server says about itself: discovery and OpenAPI.

    discovery.py  Discovery: which groups, versions and resources there are
    document.py   An answer that is encoded once and served many times: discovery and OpenAPI
    openapi/      OpenAPI v3: what kubectl reads before it creates, applies, edits or explains

Both are made once for each generation of the catalog and served many times.
"""
