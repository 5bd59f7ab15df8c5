"""The page ``01_directional_bias``: which waves networks learn, and which they cannot.

- `tasks`: two tasks that are mirror images, of which LeNet learns one; what the reader trains;
- `maps`: all waves of the published grid (the paper's Fig. 1), and how well two maps agree;
- `speed`: how fast waves are learned (Fig. 2);
- `without_pooling`: what is left of the bias without pooling (Fig. 3).
"""

from nads_book.pages.directional_bias import maps, speed, tasks, without_pooling
from nads_book.pages.directional_bias.maps import (
    plot_agreement,
    plot_lenet_map,
    plot_published_maps,
)
from nads_book.pages.directional_bias.speed import plot_speed
from nads_book.pages.directional_bias.tasks import (
    plot_bet,
    plot_memorised,
    plot_tasks,
    plot_your_training,
)
from nads_book.pages.directional_bias.without_pooling import (
    plot_without_pooling,
    show_playground,
)

PARTS = (tasks, maps, speed, without_pooling)
