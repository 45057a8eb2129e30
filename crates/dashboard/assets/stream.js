// The live data of the node: server-sent events, put together to topics. Runs in a worker that all tabs share, or in the
// page where there are no such workers.

const RETRY_MS = 1000;

export class Stream {
  // `emit` gets {kind: 'topic', name, state, changed, whole} and {kind: 'link', up}.
  constructor(emit) {
    this.emit = emit;
    this.topics = new Map();
    this.up = false;
    this.source = null;
    this.open();
  }

  open() {
    this.close();
    const source = new EventSource('/api/live');
    this.source = source;
    this.names = new Set();
    source.onopen = () => this.link(true);
    source.onerror = () => {
      this.link(false);
      if (source.readyState === EventSource.CLOSED) {
        this.timer = setTimeout(() => this.open(), RETRY_MS);
      }
    };
    source.addEventListener('begin', (event) => {
      this.topics.clear();
      for (const name of JSON.parse(event.data).topics ?? []) this.listen(name);
    });
  }

  close() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  listen(name) {
    if (this.names.has(name)) return;
    this.names.add(name);
    this.source.addEventListener(name, (event) => this.change(name, JSON.parse(event.data)));
  }

  change(name, data) {
    const whole = !this.topics.has(name);
    const state = this.topics.get(name) ?? {};
    for (const [key, value] of Object.entries(data)) {
      if (value === null) delete state[key];
      else state[key] = value;
    }
    this.topics.set(name, state);
    this.emit({ kind: 'topic', name, data, whole });
  }

  link(up) {
    if (this.up === up) return;
    this.up = up;
    this.emit({ kind: 'link', up });
  }
}
