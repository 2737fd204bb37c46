// Saves the newest state of one answer, one request at a time. "saved" is said only after the server's answer.

import { put } from "./api.js";

const DELAY = 250;
const RETRY = 1500;
const MAX_KEEPALIVE = 20_000; // characters; browsers refuse more than 64 KiB

export class Saver {
  // snapshot(): what to save. onSaved(annotation), onState(state, detail), onConflict(annotation).
  constructor(path, { snapshot, onSaved, onState, onConflict }) {
    Object.assign(this, { path, snapshot, onSaved, onState, onConflict });
    this.dirty = false;
    this.running = null;
    this.timer = null;
    this.closed = false;
  }

  change(delay = 0) {
    this.dirty = true;
    this.onState("saving");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.flush(), delay ? DELAY : 0);
  }

  // Saves what is not saved yet; true where everything is.
  async flush() {
    clearTimeout(this.timer);
    while (this.running || this.dirty) {
      if (this.running) {
        if (!(await this.running)) return false;
      } else {
        this.running = this.#save();
        const ok = await this.running;
        this.running = null;
        if (!ok) return false;
      }
    }
    return true;
  }

  async #save() {
    this.dirty = false;
    try {
      const body = this.snapshot();
      const keepalive = JSON.stringify(body).length < MAX_KEEPALIVE; // finishes when the page is closed meanwhile
      this.onSaved(await put(this.path, body, { keepalive }));
      if (!this.dirty) this.onState("saved");
      return true;
    } catch (error) {
      this.dirty = true;
      if (error.status === 409 && error.body?.current) {
        this.onState("conflict");
        this.onConflict(error.body.current);
      } else if (error.status >= 400 && error.status < 500) {
        this.onState("failed", error.message);
      } else {
        this.onState("retrying", error.message);
        if (!this.closed) this.timer = setTimeout(() => this.flush(), RETRY);
      }
      return false;
    } finally {
      this.running = null;
    }
  }
}
