// The machine: memory by owner, CPU by stage, disk by folder, signature engine and referee; and their past.

import { history } from '../api.js';
import { charts } from '../charts.js';
import { badge, bytes, card, duration, facts, h, meters, num, percent, rate, set, signed, spent } from '../ui.js';

const OWNERS = {
	coins: ['coins', 'Unspent coins in memory, up to -dbcache and the table of all coins'],
	window: ['blocks being validated', 'Blocks in the pipeline of the engine'],
	blocks: ['blocks that wait', 'Blocks from peers that wait for validation'],
	mempool: ['mempool', 'As -maxmempool counts it'],
	index: ['indexes', 'Blocks of the address and transaction index that are in no segment yet'],
	headers: ['headers', 'At most 191 bytes for each header'],
};

const FOLDERS = { disk_blocks: 'blocks', disk_chainstate: 'chainstate', disk_indexes: 'indexes', disk_other: 'other' };

export default function machine(root, { on, every, atEnd }) {
	const [memory, stages, disk, signatures] = ['stages', 'stages', 'stages', 'sentences'].map((name) => h(`div.${name}`));
	const memoryFacts = facts();
	const cpu = facts({ 'Read from disks': 'Since the start, without the page cache', 'By all calls': 'Read and written, with the page cache and sockets' });
	const diskFacts = facts({ 'Still needed by the sync': 'Blocks and indexes of the whole chain, as far as known today' });
	const engine = facts({ 'Checks repeated in samples': 'By libsecp256k1', 'Blocks at the tip': 'Verified again in full, and in samples',
		'Second opinion': '-secondopinion: Bitcoin Core’s code verifies blocks again' });
	root.append(
		h('div.columns', card('Memory', memory, memoryFacts), card('Disk', disk, diskFacts)),
		h('div.columns', card('CPU and storage', cpu), card('Signatures', signatures, engine)), card('CPU by stage', stages));
	charts(root, atEnd, [
		['CPU', { cpu: 'share of all cores' }, { format: (share) => percent(share, share < 0.01 ? 2 : share < 0.1 ? 1 : 0), min: 0, range: 21600 }],
		['Memory over time', { memory: 'process', memory_coins: 'coins', mempool_usage: 'mempool' }, { format: bytes, min: 0, range: 21600 }],
		['Storage', { disk_read: 'read', disk_written: 'written' }, { format: rate, min: 0, range: 21600 }],
		['Disk space by folder', FOLDERS, { format: bytes, stacked: true, min: 0, range: 86400 }],
	]);

	// Rows of [label, value, help], the largest first, each with its share of the total.
	const shares = (box, rows, total, words, empty) => meters(box,
		rows.filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1]).map(([label, value, help]) => [label, value / total, words(value), help]), empty);
	const total = (values) => values.reduce((sum, value) => sum + value, 0);

	function drawMemory(now) {
		const owners = Object.entries(now.memory ?? {});
		const sum = total(owners.map(([, value]) => value));
		shares(memory, [...owners.map(([key, value]) => [OWNERS[key]?.[0] ?? key, value, OWNERS[key]?.[1]]),
			['everything else', now.resident - sum, 'Code, stacks, buffers, caches of indexes and servers, memory that the allocator keeps']],
		now.resident ?? sum, bytes, 'The system does not report the memory of the process.');
		memoryFacts.update({
			'Memory of the process': bytes(now.resident), Peak: bytes(now.peak), 'Memory of the machine': bytes(now.memoryTotal),
			Threads: num(now.threads), 'Open files and sockets': num(now.openFiles),
		});
	}

	function drawCpu(now) {
		const list = now.stages ?? [];
		const all = total(list.map((stage) => stage.cpu));
		shares(stages, list.map((stage) => [stage.name, stage.cpu, stage.what]), all,
			(value) => `${percent(value / all)} · ${spent(value)}`, 'No block was validated since the start.');
		cpu.update({
			'CPU now': `${typeof now.cpuShare === 'number' ? now.cpuShare.toFixed(2) : '–'} of ${now.cores} cores`,
			'CPU time since the start': duration(now.cpuSeconds), 'Read from disks': bytes(now.diskRead), 'Written to disks': bytes(now.diskWritten),
			'By all calls': `${bytes(now.callsRead)} read, ${bytes(now.callsWritten)} written`,
		});
	}

	function drawDisk(now) {
		const list = Object.entries(now.folders ?? {});
		shares(disk, list.map(([name, value]) => (name === 'files' ? ['other files', value, 'Files in no folder, such as the log and mempool.dat'] : [name, value])),
			total(list.map(([, value]) => value)), bytes, 'The files are being added up.');
		diskFacts.update({
			'Free space': now.needed > now.free ? h('span', badge('bad', 'not enough'), ` ${bytes(now.free)}`) : bytes(now.free),
			'Still needed by the sync': typeof now.needed === 'number' ? bytes(now.needed) : 'nothing', 'Data directory': now.datadir,
		});
	}

	function drawSignatures({ signatures: of, signatureSentence, secondOpinion }) {
		if (!of) return;
		set(signatures, h('p', badge(of.is_trusted ? 'good' : 'bad', of.is_trusted ? 'trusted' : 'WRONG'), ` ${signatureSentence}`));
		engine.update({
			Engine: of.kernel, 'Checks repeated in samples': num(of.sampled), 'Checks repeated at the tip': num(of.reviewed), Disagreements: num(of.disagreements),
			'Blocks at the tip': `${num(of.blocks_reviewed)} in full, ${num(of.blocks_sampled)} in samples`,
			'Second opinion': secondOpinion ? `${num(secondOpinion.blocks_at_tip)} at the tip, ${num(secondOpinion.blocks_sampled)} sampled, ${num(secondOpinion.rejected)} rejected, ${num(secondOpinion.failed)} failed` : 'off',
		});
	}

	on('machine', (now) => [drawMemory, drawCpu, drawDisk, drawSignatures].forEach((draw) => draw(now)));
	every(60000, async () => {
		const now = Date.now() / 1000;
		const found = await history(Object.keys(FOLDERS), now - 86400, now).catch(() => ({ series: {} }));
		const known = Object.values(found.series).map((points) => points.filter((value) => value !== null)).filter(({ length }) => length > 0);
		const sum = total(known.map((points) => points.at(-1) - points[0]));
		diskFacts.update({ 'Growth in the last day': known.length === 0 ? null : signed(sum, bytes) });
	});
}
