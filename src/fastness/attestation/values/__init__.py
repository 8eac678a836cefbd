"""Reference values and their life.

computed.py     Values that were computed from the bytes of an image, as they stand on its ReferenceValueSet
differences.py  Where a machine differs from what was expected, register by register and event by event
from_images.py  From an approved image to reference values
image_life.py   The life of an image's reference values
measured.py     Which measured values of each kind of evidence are compared, what they are called, and where their claims are
phases.py       PCR 11 without its boot phases: an image has one value, and machines are compared with it in every phase
prediction.py   Where a real boot left the prediction
pushed_here.py  The controllers' own word that they had an image built and pushed for a pool
rvps.py         Reference values in the shape of the Reference Value Provider Service, read and written
tuples.py       Values that belong together: an image is a tuple of values, and a machine is compared with whole images
values.py       The book of reference values: what machines may measure, who says so, and since when no longer
"""
