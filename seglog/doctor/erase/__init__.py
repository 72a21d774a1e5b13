"""Erasure: takes the body out of a message and all its copies, and proves that it is nowhere any more.

Holds the journal that makes an erase complete after a crash, the search for residues, and the certificate.

Called by ``seglog erase``, and by ``plans`` to finish an interrupted one.
Truth: the bytes on disk after the erase; the certificate names what was not searched.
"""

from __future__ import annotations

from seglog.doctor.erase.certificate import certificate, copy_fields, is_complete, not_looked_at
from seglog.doctor.erase.erase import Erased, ErasePlan, apply_erase, finish_erase, plan_erase

__all__ = [
    "ErasePlan",
    "Erased",
    "apply_erase",
    "certificate",
    "copy_fields",
    "finish_erase",
    "is_complete",
    "not_looked_at",
    "plan_erase",
]
