"""What plugins in Python share: the process and its calls, documents, errors, and changes of files.

It was written from contract/SPEC.md and contract/pluginv1/pb/plugin.proto alone; its comments name the clauses.
"""
