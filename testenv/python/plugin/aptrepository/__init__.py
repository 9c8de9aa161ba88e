"""A plugin of machineadm that keeps a repository of Debian packages configured: a source, its key, its credentials.

It was written from contract/SPEC.md and contract/pluginv1/pb/plugin.proto alone; its comments name the clauses.
"""

API_VERSION = "apt.example.org/v1"
KIND = "AptRepository"
