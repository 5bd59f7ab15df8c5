// Random networks of one architecture: they are drawn in blocks, and what is known of their NADs sharpens

import { NETWORKS, PIXELS } from "./engine.js";

export const ENOUGH = 400; // networks
const SEED = 1;

export class Ensemble {
  halves = [0, 1].map(() => new Float64Array(PIXELS ** 2));
  counts = [0, 0];
  next = 0; // network that is drawn next
  jobs = new Set();
  found = null; // {networks, energies, nads}
  begun = performance.now();

  /** `tell()` is called when more is known. */
  constructor(config, pool, tell) {
    Object.assign(this, { config, pool, tell });
  }

  get networks() {
    return this.counts[0] + this.counts[1];
  }

  /** Keep the pool busy, but leave the order of turns to it. */
  go() {
    while (this.next < ENOUGH && this.jobs.size < 2 * this.pool.lanes.length) {
      const index = this.next;
      this.next += NETWORKS;
      const job = this.start({ kind: "draw", config: this.config, seed: SEED, index }, 0, (sums) => {
        const half = (index / NETWORKS) % 2, total = this.halves[half];
        for (let i = 0; i < sums.length; i++) total[i] += sums[i];
        this.counts[half] += NETWORKS;
        this.look();
        this.go();
      });
      this.jobs.add(job);
    }
  }

  start(message, priority, then) {
    const job = this.pool.run(message, { priority });
    job.done.then((result) => {
      this.jobs.delete(job);
      if (result && !this.ended) then(result);
    }, ({ message }) => {
      this.trouble = message;
      this.tell();
    });
    return job;
  }

  /** Compute NADs and energies, if there are a quarter more networks than last time. */
  look() {
    const { networks, config, halves, counts } = this;
    if (this.solving || !counts[0] || !counts[1] || networks < Math.min(1.25 * (this.found?.networks ?? 0), ENOUGH)) return;
    if (networks === this.found?.networks) return;
    this.solving = this.start({ kind: "solve", config, halves, counts }, 1, (found) => {
      this.solving = null;
      this.found = { networks, ...found };
      this.tell();
      this.look();
    });
  }

  end() {
    this.ended = true;
    this.jobs.forEach((job) => this.pool.stop(job));
    if (this.solving) this.pool.stop(this.solving);
  }
}
