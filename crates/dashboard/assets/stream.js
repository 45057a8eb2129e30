// The live data of the node: server-sent events, put together to topics. Runs in a worker that all tabs share, or in the
// page where there are no such workers.

const RETRY_MS = 1000;

// Takes changes into the state of a topic; null removes a key.
export function merge(topics, name, data, isWhole = !topics.has(name)) {
	const state = isWhole ? {} : topics.get(name);
	Object.assign(state, data);
	for (const [key, value] of Object.entries(data)) if (value === null) delete state[key];
	topics.set(name, state);
	return state;
}

export class Stream {
	topics = new Map();
	up = false;

	// `emit` gets {kind: 'topic', name, data, whole} and {kind: 'link', up}.
	constructor(emit) {
		this.emit = emit;
		this.open();
	}

	open() {
		this.close();
		const source = new EventSource('/api/live');
		const names = new Set();
		this.source = source;
		source.onopen = () => this.link(true);
		source.onerror = () => {
			this.link(false);
			if (source.readyState === EventSource.CLOSED) this.timer = setTimeout(() => this.open(), RETRY_MS);
		};
		source.addEventListener('begin', (event) => {
			this.topics.clear();
			for (const name of JSON.parse(event.data).topics ?? []) {
				if (names.has(name)) continue;
				names.add(name);
				source.addEventListener(name, (change) => this.change(name, JSON.parse(change.data)));
			}
		});
	}

	close() {
		clearTimeout(this.timer);
		this.source?.close();
	}

	change(name, data) {
		const whole = !this.topics.has(name);
		merge(this.topics, name, data);
		this.emit({ kind: 'topic', name, data, whole });
	}

	link(up) {
		if (this.up === up) return;
		this.up = up;
		this.emit({ kind: 'link', up });
	}
}
