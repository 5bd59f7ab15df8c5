// What a worker does: jobs that advance in small steps, so that they can pause and stop. Also runs in a page.

import { Moments, NETWORKS, Network } from "./engine.js";
import { solve } from "./solve.js";
import { train } from "./train.js";

const drawn = new Map(); // by architecture, the last few
let moments = null;

function networkOf(config) {
  const key = JSON.stringify(config);
  if (!drawn.has(key)) {
    if (drawn.size > 2) drawn.clear();
    drawn.set(key, new Network(config));
  }
  return drawn.get(key);
}

// Each is a generator that yields {progress} to report, or nothing, and returns the result.
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

  *solve({ config, halves, counts }) {
    return solve(config, halves, counts);
  },

  *train({ config, wave, seed }) {
    let last;
    for (last of train(config, wave, { seed })) yield { progress: last };
    return last;
  },
};

/** Serve messages {id, kind, ...}, {stop: id} and {paused}; `post` receives {id, progress} and {id, result} or {id, error}. */
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
      else if (value) post({ id, progress: value.progress });
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
