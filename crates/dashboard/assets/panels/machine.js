// The machine: memory by owner, CPU by stage, disk by folder, signature engine and referee; and their past.

import { history } from '/assets/api.js';
import { chart } from '/assets/charts.js';

const OWNERS = {
  coins: ['coins', 'Unspent coins in memory, up to -dbcache and the table of all coins'],
  window: ['blocks being validated', 'Blocks in the pipeline of the engine'],
  blocks: ['blocks that wait', 'Blocks from peers that wait for validation'],
  mempool: ['mempool', 'As -maxmempool counts it'],
  index: ['indexes', 'Blocks of the address and transaction index that are in no segment yet'],
  headers: ['headers', 'At most 191 bytes for each header'],
};

export default {
  name: 'machine',
  title: 'Machine',
  start(root, { live, ui }) {
    const { h, set, card, facts, bar, bytes, num, percent, duration, rate, badge } = ui;
    const memory = h('div', { class: 'stages' });
    const memoryFacts = facts([
      ['resident', 'Memory of the process', 'Resident memory'], ['peak', 'Peak', 'The most since the start'],
      ['total', 'Memory of the machine'], ['threads', 'Threads'], ['files', 'Open files and sockets'],
    ]);
    const cpu = facts([
      ['busy', 'CPU now'], ['seconds', 'CPU time since the start'], ['read', 'Read from disks', 'Since the start, without the page cache'],
      ['written', 'Written to disks', 'Since the start'], ['calls', 'By all calls', 'Read and written, with the page cache and sockets'],
    ]);
    const stages = h('div', { class: 'stages' });
    const disk = h('div', { class: 'stages' });
    const diskFacts = facts([['free', 'Free space'], ['needed', 'Still needed by the sync', 'Blocks and indexes of the whole chain, as far as known today'], ['growth', 'Growth in the last day'], ['dir', 'Data directory']]);
    const signatures = h('div', {});
    const engine = facts([
      ['kernel', 'Engine'], ['sampled', 'Checks repeated in samples', 'By libsecp256k1'], ['reviewed', 'Checks repeated at the tip'],
      ['disagreements', 'Disagreements'], ['blocks', 'Blocks at the tip', 'Verified again in full, and in samples'], ['opinion', 'Second opinion', '-secondopinion: Bitcoin Core’s code verifies blocks again'],
    ]);
    const charts = h('div', { class: 'charts' });
    root.append(
      h('div', { class: 'columns' }, card('Memory', memory, memoryFacts), card('Disk', disk, diskFacts)),
      h('div', { class: 'columns' }, card('CPU and storage', cpu, h('h3', {}, 'CPU by stage'), stages), card('Signatures', signatures, engine)),
      charts);
    const draw = (title, series, options) => {
      const section = card(title);
      charts.append(section);
      return chart(section, series, { title, range: 21600, ...options });
    };
    const running = [
      draw('CPU', [{ name: 'cpu', label: 'share of all cores' }], { format: (share) => percent(share, share < 0.1 ? 1 : 0), min: 0 }),
      draw('Memory over time', [{ name: 'memory', label: 'process' }, { name: 'memory_coins', label: 'coins' }, { name: 'mempool_usage', label: 'mempool' }], { format: bytes, min: 0 }),
      draw('Storage', [{ name: 'disk_read', label: 'read' }, { name: 'disk_written', label: 'written' }], { format: rate, min: 0 }),
      draw('Disk space by folder', [
        { name: 'disk_blocks', label: 'blocks' }, { name: 'disk_chainstate', label: 'chainstate' },
        { name: 'disk_indexes', label: 'indexes' }, { name: 'disk_other', label: 'other' },
      ], { format: bytes, stacked: true, min: 0, range: 86400 }),
    ];

    function rows(box, list, total, words, empty) {
      if (list.length === 0) return set(box, h('p', { class: 'muted' }, empty));
      return set(box, list.map(([label, value, help]) => {
        const line = bar(label);
        line.update(total > 0 ? value / total : 0, words(value));
        return h('div', { class: 'stage', title: help }, h('span', {}, label), line, h('span', { class: 'number' }, words(value)));
      }));
    }

    function drawMemory(now) {
      const list = Object.entries(now.memory ?? {}).filter(([, value]) => value > 0)
        .map(([key, value]) => [OWNERS[key]?.[0] ?? key, value, OWNERS[key]?.[1]]).sort((a, b) => b[1] - a[1]);
      const sum = list.reduce((all, [, value]) => all + value, 0);
      if (now.resident > sum) list.push(['everything else', now.resident - sum, 'Code, stacks, buffers, caches of indexes and servers, memory that the allocator keeps']);
      rows(memory, list, now.resident ?? sum, bytes, 'The system does not report the memory of the process.');
      memoryFacts.update({
        resident: bytes(now.resident), peak: bytes(now.peak), total: bytes(now.memoryTotal), threads: num(now.threads), files: num(now.openFiles),
      });
    }

    function drawStages(now) {
      const list = (now.stages ?? []).filter((stage) => stage.cpu > 0);
      const total = list.reduce((sum, stage) => sum + stage.cpu, 0);
      rows(stages, list.sort((a, b) => b.cpu - a.cpu).map((stage) => [stage.name, stage.cpu, stage.what]), total,
        (value) => `${percent(total > 0 ? value / total : 0)} · ${value.toFixed(1)} s`, 'No block was validated since the start.');
      cpu.update({
        busy: typeof now.cpuShare === 'number' ? `${now.cpuShare.toFixed(2)} of ${now.cores} cores` : `– of ${now.cores} cores`,
        seconds: duration(now.cpuSeconds), read: bytes(now.diskRead), written: bytes(now.diskWritten),
        calls: `${bytes(now.callsRead)} read, ${bytes(now.callsWritten)} written`,
      });
    }

    function drawDisk(now) {
      const list = Object.entries(now.folders ?? {}).filter(([, value]) => value > 0)
        .map(([name, value]) => (name === 'files' ? ['other files', value, 'Files in no folder, such as the log and mempool.dat'] : [name, value])).sort((a, b) => b[1] - a[1]);
      const total = list.reduce((sum, [, value]) => sum + value, 0);
      rows(disk, list, total, bytes, 'The files are being added up.');
      const short = typeof now.needed === 'number' && now.needed > now.free;
      diskFacts.update({
        free: short ? h('span', {}, badge('bad', 'not enough'), ` ${bytes(now.free)}`) : bytes(now.free),
        needed: typeof now.needed === 'number' ? bytes(now.needed) : 'nothing', dir: now.datadir,
      });
    }

    function drawSignatures(now) {
      const of = now.signatures;
      if (!of) return;
      set(signatures, h('p', {}, badge(of.is_trusted ? 'good' : 'bad', of.is_trusted ? 'trusted' : 'WRONG'), ` ${now.signatureSentence}`));
      const opinion = now.secondOpinion;
      engine.update({
        kernel: of.kernel, sampled: num(of.sampled), reviewed: num(of.reviewed), disagreements: num(of.disagreements),
        blocks: `${num(of.blocks_reviewed)} in full, ${num(of.blocks_sampled)} in samples`,
        opinion: opinion ? `${num(opinion.blocks_at_tip)} at the tip, ${num(opinion.blocks_sampled)} sampled, ${num(opinion.rejected)} rejected, ${num(opinion.failed)} failed` : 'off',
      });
    }

    async function growth() {
      const now = Date.now() / 1000;
      const names = ['disk_blocks', 'disk_chainstate', 'disk_indexes', 'disk_other'];
      try {
        const { series } = await history(names, now - 86400, now);
        const ends = (points) => [points.find((value) => value !== null), points.findLast((value) => value !== null)];
        const all = names.map((name) => ends(series[name])).filter(([first]) => first !== undefined);
        const sum = all.reduce((total, [first, last]) => total + last - first, 0);
        diskFacts.update({ growth: all.length === 0 ? '–' : `${sum < 0 ? '−' : '+'}${bytes(Math.abs(sum))}` });
      } catch {
        diskFacts.update({ growth: '–' });
      }
    }
    growth();
    const timer = setInterval(growth, 60000);
    const off = live.on('machine', (now) => {
      drawMemory(now);
      drawStages(now);
      drawDisk(now);
      drawSignatures(now);
    });
    return () => {
      off();
      clearInterval(timer);
      running.forEach((one) => one.stop());
    };
  },
};
