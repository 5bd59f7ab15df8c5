// What a worker does: jobs that advance in small steps, so that they can pause and stop. Also runs in a page.

import { Moments, NETWORKS, Network } from "./engine.js";
import { look } from "./look.js";
import { solve } from "./solve.js";
import { RECIPE, Training } from "./train.js";

/** Keep the last few of what `make(...question)` returns, which is expensive. */
function keeping(most, make) {
  const kept = new Map();
  return (...question) => {
    const key = JSON.stringify(question), found = kept.get(key) ?? make(...question);
    kept.delete(key);
    if (kept.size === most) kept.delete(kept.keys().next().value);
    kept.set(key, found);
    return found;
  };
}

const networkOf = keeping(3, (config) => new Network(config));
const learnerOf = keeping(2, (config) => new Network(config, { outputs: 2, lanes: RECIPE.batch }));
const trainingOf = keeping(8, (config, wave, recipe) =>
  new Training(config, Float32Array.from(wave), { ...recipe, network: learnerOf(config) }));
let moments = null;

// Each is a generator that yields between its steps, and returns the result.
const JOBS = {
  /** Draw NETWORKS networks from `index` on, and return their share of the second moment. */
  *draw({ config, seed, index }) {
    moments ??= new Moments();
    for (let place = 0; place < NETWORKS; place++) {
      moments.add(networkOf(config), seed, index, place);
      yield;
    }
    return moments.sum();
  },

  *solve({ config, groups, counts, last }) {
    return solve(config, groups, counts, { last });
  },

  /** One epoch from these weights on, or from random ones. */
  *train({ config, wave, recipe, epoch, weights }) {
    const training = trainingOf(config, [...wave], recipe);
    if (weights) Object.assign(training, { epoch, weights });
    else if (training.epoch) Object.assign(training, new Training(config, wave, { ...recipe, network: training.network }));
    const accuracy = training.advance();
    return { accuracy, weights: training.weights };
  },

  *look({ config, seed, directions }) {
    return yield* look(networkOf(config), seed, directions);
  },
};

/** Serve messages {id, kind, ...}, {stop: id} and {paused}; `post` receives {id, result} or {id, error}. */
export function serve(post) {
  const { port1, port2 } = new MessageChannel(), running = new Map(); // id -> generator
  let paused = false, waiting = false;
  const soon = () => {
    if (paused || waiting || !running.size) return;
    waiting = true;
    port2.postMessage(null); // lets messages in between steps
  };
  port1.onmessage = () => {
    waiting = false;
    if (paused || !running.size) return;
    const [[id, job]] = running;
    try {
      const { value, done } = job.next();
      if (done) running.delete(id);
      if (done) post({ id, result: value });
    } catch (error) {
      running.delete(id);
      post({ id, error: error.message });
    }
    soon();
  };
  return (message) => {
    if ("paused" in message) ({ paused } = message);
    else if ("stop" in message) running.delete(message.stop);
    else running.set(message.id, JOBS[message.kind](message));
    soon();
  };
}

if (typeof document === "undefined") {
  const receive = serve((message) => postMessage(message));
  onmessage = ({ data }) => receive(data);
} else globalThis.nadPlaygroundServe = serve;
