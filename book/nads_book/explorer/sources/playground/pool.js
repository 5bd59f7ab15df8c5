// Workers that share the jobs of a page

import PROGRAM from "worker-program"; // worker.js and what it imports, as a text

const MOST = 4; // workers

/** A worker, as a function that takes messages. Where workers are not allowed, the page itself does the work, in steps. */
function lane(receive, number) {
  const here = () => {
    if (!globalThis.nadPlaygroundServe)
      document.head.append(Object.assign(document.createElement("script"), { textContent: PROGRAM }));
    return number ? null : globalThis.nadPlaygroundServe(receive); // one is enough
  };
  try {
    const address = URL.createObjectURL(new Blob([PROGRAM], { type: "text/javascript" }));
    const worker = new Worker(address), sent = [];
    let send = (message) => {
      sent.push(message);
      worker.postMessage(message);
    };
    worker.onmessage = ({ data }) => {
      sent.length = 0;
      worker.onmessage = ({ data }) => receive(data);
      receive(data);
    };
    worker.onerror = () => { // it has never begun
      const other = here();
      send = (message) => other?.(message);
      sent.splice(0).forEach((message) => send(message));
    };
    return (message) => send(message);
  } catch {
    return here();
  }
}

/** Jobs by priority, one at a time for each worker. */
export class Pool {
  queue = [];
  running = new Map(); // id -> job
  paused = false;
  next = 0;

  constructor() {
    this.lanes = Array.from({ length: Math.min(navigator.hardwareConcurrency || 2, MOST) }, (_, number) => {
      const one = { busy: null };
      one.send = lane((message) => this.receive(one, message), number);
      return one;
    }).filter(({ send }) => send);
  }

  /** Run a job; resolves to its result, or to undefined if it is stopped. The last one of a priority waits longest. */
  run(message, { priority = 0 } = {}) {
    const job = { id: this.next++, message, priority };
    job.done = new Promise((resolve, reject) => Object.assign(job, { resolve, reject }));
    this.queue.push(job);
    this.queue.sort((a, b) => b.priority - a.priority || a.id - b.id);
    this.deal();
    return job;
  }

  stop(job) {
    this.queue = this.queue.filter((other) => other !== job);
    for (const one of this.lanes)
      if (one.busy === job) {
        one.send({ stop: job.id });
        one.busy = null;
      }
    job.resolve();
    this.deal();
  }

  pause(paused) {
    if (paused === this.paused) return;
    this.paused = paused;
    this.lanes.forEach(({ send }) => send({ paused }));
    this.deal();
  }

  deal() {
    for (const one of this.lanes) {
      if (this.paused || one.busy || !this.queue.length) continue;
      one.busy = this.queue.shift();
      one.send({ id: one.busy.id, ...one.busy.message });
    }
  }

  receive(one, { id, result, error }) {
    const job = one.busy;
    if (job?.id !== id) return; // it was stopped
    one.busy = null;
    if (error) job.reject(new Error(error));
    else job.resolve(result);
    this.deal();
  }
}

let shared = null;
/** The pool that all figures of a page share. */
export const pool = () => (shared ??= new Pool());
