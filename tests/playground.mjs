// Answers the questions of test_playground.py, one JSON object a line. The argument is the folder of the playground's
// sources. Arrays travel as base64 of float32.

import { createInterface } from "node:readline";

const load = (name) => import(`${process.argv[2]}/${name}.js`);
const [engine, random, solver, training] = await Promise.all(["engine", "random", "solve", "train"].map(load));

const floats = (text) => new Float32Array(Uint8Array.from(Buffer.from(text, "base64")).buffer);
const packed = (array) => Buffer.from(new Float32Array(array).buffer).toString("base64");

const ANSWERS = {
  /** Outputs, averaged input gradients of some readouts, and the weight gradient of sum(outputs * dOutputs). */
  passes({ config, outputs, plain, weights, images, readouts, dOutputs }) {
    const network = new engine.Network(config, { outputs, plain }), pixels = floats(images);
    network.load(floats(weights));
    network.forward((lane, i) => pixels[lane * engine.PIXELS + i]);
    const values = packed(network.evaluate()), inputs = packed(network.inputGradients(floats(readouts)));
    return { values, inputs, weights: packed(network.weightGradient(floats(dOutputs))) };
  },

  /** What networks contribute, (networks, readouts, 2, PIXELS), and what `solve` makes of them. */
  ensemble({ config, networks, seed }) {
    const network = new engine.Network(config), moments = new engine.Moments(), vectors = [];
    const halves = [0, 1].map(() => new Float64Array(engine.PIXELS ** 2)), counts = [0, 0];
    for (let index = 0; index < networks; index += engine.NETWORKS) {
      const half = (index / engine.NETWORKS) % 2;
      for (let place = 0; place < engine.NETWORKS; place++) moments.add(network, seed, index, place);
      moments.sum().forEach((x, i) => (halves[half][i] += x));
      counts[half] += engine.NETWORKS;
      for (let n = 0; n < engine.NETWORKS; n++) vectors.push(...engine.contributions(network, seed, index + n));
    }
    const { energies, nads } = solver.solve(config, halves, counts);
    return { vectors: packed(vectors), energies: packed(energies), eigenvalues: nads.map(({ eigenvalue }) => eigenvalue),
      directions: packed(nads.flatMap(({ direction }) => [...direction])), agreements: nads.map(({ agreement }) => agreement) };
  },

  waves: () => packed(solver.FREQUENCIES.flatMap((cell) => [...solver.waveOf(cell)])),

  /** Data, initial weights and order of the samples of a training, and its accuracy after each epoch. */
  training({ config, wave, seed, epochs }) {
    const v = solver.waveOf(wave), start = training.startOf(config, v, seed);
    const orders = Array.from({ length: epochs }, (_, epoch) => [...training.orderOf(seed, epoch)]);
    const accuracies = [...training.train(config, v, { seed, epochs })].map(({ accuracy }) => accuracy);
    const [train, test] = [start.data, start.test].map(({ images, labels }) => ({ images: packed(images), labels: [...labels] }));
    return { train, test, weights: packed(start.weights), orders, accuracies };
  },

  random: ({ count, seed }) => packed(random.gaussians(random.keyOf(seed), count)),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { name, ...question } = JSON.parse(line);
  console.log(JSON.stringify(ANSWERS[name](question)));
}
