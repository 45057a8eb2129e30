// One stream of live data for all tabs of a browser.

import { Stream } from './stream.js';

const ports = new Set();
let stream = null;

function emit(message) {
	for (const port of ports) port.postMessage(message);
}

self.onconnect = (event) => {
	const port = event.ports[0];
	port.onmessage = ({ data }) => {
		if (data === 'bye') {
			ports.delete(port);
			if (ports.size === 0) {
				stream?.close();
				stream = null;
			}
		} else if (data === 'again') {
			stream?.open();
		} else {
			ports.add(port);
			if (stream === null) {
				stream = new Stream(emit);
			} else {
				port.postMessage({ kind: 'link', up: stream.up });
				for (const [name, state] of stream.topics) port.postMessage({ kind: 'topic', name, data: state, whole: true });
			}
		}
	};
	port.start();
};
