// Random networks of one architecture: they are drawn in blocks, and what is known of their NADs sharpens

import { dot } from "../numbers.js";
import { NETWORKS, PIXELS } from "./engine.js";
import { GROUPS } from "./solve.js";

export const ENOUGH = 400; // networks
export class Ensemble {
  groups = Array.from({ length: GROUPS }, () => new Float64Array(PIXELS ** 2));
  counts = Array(GROUPS).fill(0);
  next = 0; // network that is drawn next
  jobs = new Set();
  found = null; // {networks, energies, nads}

  /** `tell()` is called when more is known. */
  constructor(config, seed, pool, tell) {
    Object.assign(this, { config, seed, pool, tell });
  }

  get networks() {
    return this.counts.reduce((sum, count) => sum + count, 0);
  }

  /** Keep the pool busy, but leave the order of turns to it. */
  go() {
    while (this.next < ENOUGH && this.jobs.size < 2 * this.pool.lanes.length) {
      const index = this.next;
      this.next += NETWORKS;
      const job = this.start({ kind: "draw", config: this.config, seed: this.seed, index }, 0, (sums) => {
        const group = (index / NETWORKS) % GROUPS, total = this.groups[group];
        for (let i = 0; i < sums.length; i++) total[i] += sums[i];
        this.counts[group] += NETWORKS;
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

  /** Compute NADs and energies, if there are half more networks than last time. */
  look() {
    const { networks, config, groups, counts } = this, before = this.found?.networks ?? 0;
    if (this.solving || networks < Math.min(Math.max(1.5 * before, 2 * NETWORKS), ENOUGH)) return;
    if (networks === before) return;
    this.solving = this.start({ kind: "solve", config, groups, counts, last: networks === ENOUGH }, 1, (found) => {
      this.solving = null;
      this.found = { networks, ...found };
      this.tell();
      this.look();
    });
  }

  /** Energy of any direction, v' C v. */
  energy(v) {
    let energy = 0;
    for (const group of this.groups)
      for (let i = 0; i < PIXELS; i++) energy += v[i] * dot(v, group.subarray(i * PIXELS, (i + 1) * PIXELS));
    return energy / this.networks;
  }

  end() {
    this.ended = true;
    this.jobs.forEach((job) => this.pool.stop(job));
    if (this.solving) this.pool.stop(this.solving);
  }
}
