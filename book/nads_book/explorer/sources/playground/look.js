// What is left of a direction after each layer of random networks

import { IMAGES, INPUTS, PIXELS, drawWeights } from "./engine.js";
import { gaussians, keyOf } from "./random.js";

const NETWORKS = 16, BATCHES = 2; // of networks, and of inputs for each

/**
 * Push directions (PIXELS,) through random networks: how their layers respond to a small change along each, on average over
 * images of noise.
 *
 * Returns {amplitudes: [{layer, step, values: one for each direction}], pictures: [{layer, step, maps}]}. An amplitude is the
 * root mean square over maps, pixels and networks of the mean response; its square is a product of two halves of the images,
 * so that noise adds nothing on average. Pictures are responses of the first network to the first direction.
 */
export function* look(network, seed, directions) {
  const squares = [], pictures = [];
  for (let index = 0; index < NETWORKS; index++) {
    network.load(drawWeights(network.config, 1, seed, index));
    const halves = directions.map(() => [[], []]);
    for (let batch = 0; batch < BATCHES; batch++) {
      const noise = gaussians(keyOf(seed, IMAGES, index, batch), (INPUTS / 2) * PIXELS);
      network.forward((lane, pixel) => (lane % 2 ? -1 : 1) * noise[(lane >> 1) * PIXELS + pixel]);
      directions.forEach((direction, d) => {
        let place = 0;
        network.push(direction, (layer, step, values) => {
          const sums = halves[d][batch % 2];
          sums[place] ??= { layer, step, maps: new Float32Array(values.length) };
          values.forEach((x, i) => (sums[place].maps[i] += (2 * x) / BATCHES));
          place++;
        });
      });
      yield;
    }
    halves.forEach(([one, other], d) => one.forEach(({ layer, step, maps }, place) => {
      squares[place] ??= { layer, step, values: directions.map(() => 0) };
      maps.forEach((x, i) => (squares[place].values[d] += (x * other[place].maps[i]) / maps.length / NETWORKS));
      if (!index && !d) pictures.push({ layer, step, maps: maps.map((x, i) => (x + other[place].maps[i]) / 2) });
    }));
  }
  const amplitudes = squares.map(({ values, ...place }) => ({ ...place, values: values.map((x) => Math.sqrt(Math.max(x, 0))) }));
  return { amplitudes, pictures };
}
