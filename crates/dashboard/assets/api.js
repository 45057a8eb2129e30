// Requests to the node. Every function returns a promise; an error has a sentence for the user.

export class Refused extends Error {
	constructor(message, status, code) {
		super(message);
		this.status = status;
		this.code = code;
	}
}

let session = { user: null, token: null, actions: false, open: false, topics: [] };

export const current = () => session;

async function request(path, options = {}) {
	let response;
	try {
		response = await fetch(path, { credentials: 'same-origin', cache: 'no-store', ...options });
	} catch {
		throw new Refused('The node does not answer. Is it running?', 0);
	}
	let body = null;
	try {
		body = await response.json();
	} catch {
		throw new Refused(`The node answered with status ${response.status}.`, response.status);
	}
	if (!response.ok) throw new Refused(body.error?.message ?? `Status ${response.status}.`, response.status);
	return body;
}

function post(path, body) {
	const headers = { 'Content-Type': 'application/json' };
	if (session.token) headers['X-Lydian-Token'] = session.token;
	return request(path, { method: 'POST', headers, body: JSON.stringify(body) });
}

export async function loadSession() {
	session = await request('/api/session');
	return session;
}

export async function login(credentials) {
	session = await post('/api/login', credentials);
	return session;
}

export async function logout() {
	await post('/api/logout', {});
	return loadSession();
}

// Calls a method of RPC: call('getblock', hash, 2). An object as the only parameter gives parameters by name.
export async function call(method, ...params) {
	const named = params.length === 1 && params[0] !== null && typeof params[0] === 'object' && !Array.isArray(params[0]);
	const answer = await post('/api/call', { method, params: named ? params[0] : params });
	if (answer.error) throw new Refused(answer.error.message, 200, answer.error.code);
	return answer.result;
}

export const get = (path) => request(path);

// Points of series of the history, from and to in seconds since 1970.
export const history = (series, from, to) =>
	get(`/api/history?series=${series.join(',')}&from=${Math.floor(from)}&to=${Math.ceil(to)}`);
