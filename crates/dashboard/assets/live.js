// Live data for the panels: on(topic, listener) calls listener(state, changed) now, if there is data, and at every change.

import { Stream, merge } from './stream.js';

const topics = new Map();
const listeners = new Map();
const links = new Set();
let up = false;
let port = null;
let own = null;

function take(message) {
	if (message.kind === 'link') {
		up = message.up;
		for (const listener of links) listener(up);
		return;
	}
	const { name, data, whole } = message;
	const state = merge(topics, name, data, whole || undefined);
	for (const listener of listeners.get(name) ?? []) run(listener, state, whole ? null : data);
}

function run(listener, state, changed) {
	try {
		listener(state, changed);
	} catch (error) {
		console.error(error);
	}
}

// `changed`: the keys that changed, with null for those that are gone; null if everything is new.
export function on(topic, listener) {
	if (!listeners.has(topic)) listeners.set(topic, new Set());
	listeners.get(topic).add(listener);
	if (topics.has(topic)) run(listener, topics.get(topic), null);
	return () => listeners.get(topic).delete(listener);
}

export function onLink(listener) {
	links.add(listener);
	listener(up);
	return () => links.delete(listener);
}

export const state = (topic) => topics.get(topic) ?? null;

// Begins the stream, or begins it again after a login.
export function start() {
	if (port) return port.postMessage('again');
	if (own) return own.open();
	if (typeof SharedWorker === 'function') {
		const policy = self.trustedTypes?.createPolicy('lydian', { createScriptURL: (url) => url });
		const url = '/assets/live-worker.js';
		try {
			const worker = new SharedWorker(policy ? policy.createScriptURL(url) : url, { type: 'module', name: 'lydian' });
			// The node ended before the worker was loaded.
			worker.onerror = () => {
				port = null;
				own ??= new Stream(take);
			};
			port = worker.port;
			port.onmessage = ({ data }) => take(data);
			port.start();
			port.postMessage('hello');
			addEventListener('pagehide', () => port.postMessage('bye'));
			addEventListener('pageshow', (event) => event.persisted && port.postMessage('hello'));
			return;
		} catch {
			port = null;
		}
	}
	own = new Stream(take);
}
