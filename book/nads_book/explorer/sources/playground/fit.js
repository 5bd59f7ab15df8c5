// Trainings in the page: several networks at once, epoch by epoch, which pause, step and stop

import { percent } from "./state.js";

const LEARNED = 0.75; // accuracy above which a wave was learned

/** When the next epoch of all trainings of a figure may begin. */
export class Pace {
  paused = false;
  delay = 0; // milliseconds between epochs
  waiting = [];

  turn() {
    if (this.paused) return new Promise((go) => this.waiting.push(go));
    return this.delay ? new Promise((go) => setTimeout(go, this.delay)) : null;
  }

  /** Let all that wait begin one epoch. */
  step() {
    this.waiting.splice(0).forEach((go) => go());
  }

  pause(paused) {
    this.paused = paused;
    if (!paused) this.step();
  }
}

/** Networks of one architecture, each with its own data and weights, that are trained along one direction. */
export class Fit {
  epoch = 0;
  ended = false;

  /** `tell()` is called after each epoch. */
  constructor({ target, side, wave, recipe, networks, pool, pace, tell }) {
    Object.assign(this, { target, side, wave, config: side.config, pool, pace, tell });
    this.runs = Array.from({ length: networks }, (_, i) => ({ recipe: { ...recipe, seed: recipe.seed + i }, accuracies: [0.5], weights: null }));
    this.epochs = recipe.epochs;
    this.running = true;
    this.done = this.run(); // or stopped
  }

  /** Mean accuracy on new images. */
  get accuracy() {
    return this.runs.reduce((sum, { accuracies }) => sum + accuracies.at(-1) / this.runs.length, 0);
  }

  /** Whether each network has learned it. */
  get verdicts() {
    return this.runs.map(({ accuracies }) => accuracies.at(-1) > LEARNED);
  }

  get learned() {
    return this.verdicts.filter(Boolean).length;
  }

  /** What came out, in words. */
  get result() {
    const { runs: { length }, learned, runs } = this, ends = runs.map(({ accuracies }) => accuracies.at(-1));
    return (length > 1
      ? `${learned} of ${length} networks learned, mean ${percent(this.accuracy)} (${[Math.min(...ends), Math.max(...ends)].map(percent).join(" to ")})`
      : `${percent(this.accuracy)} on new images, ${learned ? "learned" : "missed"}`) + (this.ended ? "; stopped" : "");
  }

  /** How the map marks it. */
  get mark() {
    return this.running ? "running" : this.learned === this.runs.length ? "learned" : this.learned ? "mixed" : "missed";
  }

  async run() {
    const { config, wave, pool } = this;
    while (!this.ended && this.epoch < this.epochs) {
      if (this.epoch) await this.pace.turn();
      if (this.ended) break;
      this.jobs = this.runs.map(({ recipe, weights }) =>
        pool.run({ kind: "train", config, wave, recipe, epoch: this.epoch, weights }, { priority: 2 }));
      const results = await Promise.all(this.jobs.map(({ done }) => done));
      if (this.ended) break;
      results.forEach(({ weights, accuracy }, i) => {
        this.runs[i].weights = weights;
        this.runs[i].accuracies.push(accuracy);
      });
      this.epoch++;
      this.tell();
    }
    this.running = false;
  }

  /** Stop before the end: the curve stays, but is no verdict. */
  end() {
    if (!this.running) return;
    this.ended = true;
    this.jobs?.forEach((job) => this.pool.stop(job));
  }
}
