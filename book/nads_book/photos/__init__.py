"""Photos on this machine, from torchvision, or generated where there are none."""

from nads_book.photos.loading import load_folder, load_images
from nads_book.photos.on_disk import DatasetNotFoundError

__all__ = ["DatasetNotFoundError", "load_folder", "load_images"]
