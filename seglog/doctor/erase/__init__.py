"""Erasure: removes the body of a message and all its copies, and proves that no file of the store has it.

Holds the journal that makes an erase complete after a crash, the search for residues, and the certificate.

Called by ``seglog erase``, and by ``plans`` to complete an interrupted erase.
Truth: the bytes on disk after the erase; the certificate lists the parts that were not searched.
"""

from seglog.doctor.erase.erase import Erased as Erased
from seglog.doctor.erase.erase import ErasedCopy as ErasedCopy
from seglog.doctor.erase.erase import ErasePlan as ErasePlan
from seglog.doctor.erase.erase import apply_erase as apply_erase
from seglog.doctor.erase.erase import finish_erase as finish_erase
from seglog.doctor.erase.erase import plan_erase as plan_erase
from seglog.doctor.erase.erase_certificate import certificate as certificate
from seglog.doctor.erase.erase_certificate import copy_fields as copy_fields
from seglog.doctor.erase.erase_certificate import is_complete as is_complete
from seglog.doctor.erase.erase_certificate import not_looked_at as not_looked_at
