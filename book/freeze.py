"""Write what random weights predict for Fig. 1, from the NADs that ship today: ``python book/freeze.py``.

A file that is there stays: a prediction counts because it was committed before the result that it is about.
"""

import json
import sys

import nads_book as nb
import torch
from nads_book.experiments.stored import study_path

import nads_core as nc
from nads_core.runtime.files import atomic_write
from nads_core.runtime.provenance import environment

path = study_path("predicted-fig1.json")
if path.exists():
    sys.exit(f"{path} is committed and stays as it is")
predictions = {}
for name in nb.explorer.data.LABELS:  # those whose NADs ship
    nads = nc.load_nads(name)
    about = {"version": nads.provenance["version"], "fingerprint": nads.fingerprint}
    predictions[name] = about | {"waves": nb.prediction.wave_energies(nads)}
content = {"what": nb.prediction.wave_energies.__doc__.strip(), **environment(torch.device("cpu"))}
with atomic_write(path) as file:
    head = json.dumps(content, indent=1)[:-2]
    waves = ",\n  ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in predictions.items())
    file.write(f'{head},\n "predictions": {{\n  {waves}\n }}\n}}\n')
print(f"-> {path}")
