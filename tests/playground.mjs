// Answers the questions of test_playground.py, one JSON object a line. The argument is the folder of the playground's
// sources. Arrays travel as base64 of float32.

import { createInterface } from "node:readline";

const load = (name) => import(`${process.argv[2]}/${name}.js`);
const [engine, look, random, solver, state, train] = await Promise.all(["engine", "look", "random", "solve", "state", "train"].map(load));

const floats = (text) => new Float32Array(Uint8Array.from(Buffer.from(text, "base64")).buffer);
const packed = (array) => Buffer.from(new Float32Array(array).buffer).toString("base64");

const ANSWERS = {
  /** Outputs, averaged input gradients of some readouts, and the weight gradient of sum(outputs * dOutputs). */
  passes({ config, outputs, weights, images, readouts, dOutputs }) {
    const network = new engine.Network(config, { outputs }), pixels = floats(images);
    const forward = () => network.forward((lane, i) => pixels[lane * engine.PIXELS + i]);
    network.load(floats(weights));
    forward();
    network.push(pixels.subarray(0, engine.PIXELS), () => {}); // the page may look into the layers in between
    forward();
    const values = packed(network.evaluate()), inputs = packed(network.inputGradients(floats(readouts)));
    return { values, inputs, weights: packed(network.weightGradient(floats(dOutputs))) };
  },

  /** What networks contribute, (networks, readouts, 2, PIXELS), and what `solve` makes of them. */
  ensemble({ config, networks, seed, last = true }) {
    const network = new engine.Network(config), moments = new engine.Moments(), vectors = [];
    const groups = Array.from({ length: solver.GROUPS }, () => new Float64Array(engine.PIXELS ** 2)), counts = Array(solver.GROUPS).fill(0);
    for (let index = 0; index < networks; index += engine.NETWORKS) {
      const group = (index / engine.NETWORKS) % solver.GROUPS;
      for (let place = 0; place < engine.NETWORKS; place++) moments.add(network, seed, index, place);
      moments.sum().forEach((x, i) => (groups[group][i] += x));
      counts[group] += engine.NETWORKS;
      for (let n = 0; n < engine.NETWORKS; n++) vectors.push(...engine.contributions(network, seed, index + n));
    }
    const { energies, nads } = solver.solve(config, groups, counts, { last });
    return { vectors: packed(vectors), energies: packed(energies), eigenvalues: nads.map(({ eigenvalue }) => eigenvalue),
      directions: packed(nads.flatMap(({ direction }) => [...direction])), certainties: nads.map(({ certainty }) => certainty) };
  },

  /** Certainties of all eigenvectors of groups of matrices (n, n). */
  certainties({ groups, n }) {
    const blocks = groups.map((block) => Float64Array.from(floats(block))), total = blocks[0].map((_, i) => blocks.reduce((sum, b) => sum + b[i], 0));
    const { values, vectors } = solver.eigen(total, n);
    return { values: packed(values), vectors: packed(vectors), certainties: packed(solver.certaintiesOf(blocks, vectors, n)) };
  },

  /** How the layers of random networks respond to directions (n, PIXELS). */
  look({ config, seed, directions }) {
    const all = floats(directions), rows = Array.from({ length: all.length / engine.PIXELS }, (_, i) =>
      all.subarray(i * engine.PIXELS, (i + 1) * engine.PIXELS));
    const job = look.look(new engine.Network(config), seed, rows);
    for (let step = job.next(); ; step = job.next())
      if (step.done) return { amplitudes: step.value.amplitudes, pictures: step.value.pictures.map(({ maps, ...place }) => ({ ...place, maps: packed(maps) })) };
  },

  /** Weights of random networks, and what `push` sees of a change of these images. */
  push({ config, weights, images, change }) {
    const network = new engine.Network(config), pixels = floats(images), seen = [];
    network.load(floats(weights));
    network.forward((lane, i) => pixels[lane * engine.PIXELS + i]);
    network.push(floats(change), (layer, step, values) => seen.push([step, packed(values)]));
    return seen;
  },

  python: ({ config }) => state.python(config),

  waves: () => packed(solver.FREQUENCIES.flatMap((cell) => [...solver.waveOf(cell)])),

  /** Data, initial weights and order of the samples of a training, and its accuracy after each epoch. */
  training({ config, wave, seed, epochs, rate, noise }) {
    const training = new train.Training(config, solver.waveOf(wave), { seed, epochs, rate, noise });
    const orders = Array.from({ length: epochs }, (_, epoch) => [...train.orderOf(seed, epoch)]);
    const [data, test] = [training.data, training.test].map(({ images, labels }) => ({ images: packed(images), labels: [...labels] }));
    const weights = packed(training.weights), accuracies = orders.map(() => training.advance());
    return { train: data, test, weights, orders, accuracies };
  },

  random: ({ count, seed }) => packed(random.gaussians(random.keyOf(seed), count)),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { name, ...question } = JSON.parse(line);
  console.log(JSON.stringify(ANSWERS[name](question)));
}
