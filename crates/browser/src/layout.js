// What is wrong with the layout of this page, as a list of sentences. An element that scrolls by itself may be wider
// than the window, and bars that stay in place may lie over what is scrolled below them.
(() => {
  const SLACK = 1;
  const LEAST_TEXT = 9;
  const CONTROLS = 'a[href], button, input, select, textarea, summary, [role="button"], [role="tab"], [tabindex="0"]';
  const found = new Set();
  const root = document.scrollingElement;
  // Controls are scrolled into view below; everything goes back to where it was.
  const places = [root, ...document.body.querySelectorAll('*')].map((one) => [one, one.scrollLeft, one.scrollTop]);
  root.scrollTo({left: 0, top: 0, behavior: 'instant'});

  const name = (element) => {
    const label = element.id ? '#' + element.id : [...element.classList].map((one) => '.' + one).join('');
    const text = (element.textContent || element.getAttribute('aria-label') || '').trim().replace(/\s+/g, ' ');
    return `${element.localName}${label} "${text.slice(0, 40)}"`;
  };
  const isSeen = (element) => {
    if (!element.checkVisibility({opacityProperty: true, visibilityProperty: true})) return false;
    // Text for screen readers only is in a box without room.
    for (let one = element; one && one !== document.body; one = one.parentElement) {
      const box = one.getBoundingClientRect();
      if ((box.width <= SLACK || box.height <= SLACK) && getComputedStyle(one).overflow !== 'visible') return false;
    }
    return true;
  };
  const clips = (value) => value === 'hidden' || value === 'clip';
  const scrolls = (value) => value === 'auto' || value === 'scroll';
  const isFixed = (element) => {
    for (let one = element; one; one = one.parentElement) {
      if (['fixed', 'sticky'].includes(getComputedStyle(one).position)) return true;
    }
    return false;
  };
  // The part of a box that is visible in the elements around it.
  const visiblePart = (box, element) => {
    let {left, top, right, bottom} = box;
    for (let one = element.parentElement; one && one !== document.body; one = one.parentElement) {
      const style = getComputedStyle(one);
      const outer = one.getBoundingClientRect();
      if (style.overflowX !== 'visible') [left, right] = [Math.max(left, outer.left), Math.min(right, outer.right)];
      if (style.overflowY !== 'visible') [top, bottom] = [Math.max(top, outer.top), Math.min(bottom, outer.bottom)];
      if (style.position === 'fixed') break;
    }
    return {left, top, right, bottom, width: right - left, height: bottom - top};
  };
  const overlap = (one, other) => [
    Math.min(one.right, other.right) - Math.max(one.left, other.left),
    Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top),
  ];

  if (root.scrollWidth > innerWidth + SLACK) found.add(`wide: the page is ${root.scrollWidth} pixels wide, the window ${innerWidth}`);

  const elements = [...document.body.querySelectorAll('*')].filter((one) => !one.closest('script, style, template') && isSeen(one));
  for (const element of elements) {
    const style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    if (element.closest('svg') === null || element.localName === 'svg') {
      const part = visiblePart(box, element);
      if (box.width > 0 && part.width > 0 && part.right > innerWidth + SLACK) found.add(`beyond the window: ${name(element)}`);
    }
    const hasText = element.textContent.trim() !== '' && element.closest('svg') === null;
    const isExplained = style.textOverflow === 'ellipsis' && element.closest('[title], [aria-label]') !== null;
    if (hasText && clips(style.overflowX) && element.scrollWidth > element.clientWidth + SLACK && !isExplained)
      found.add(`cut off at the side: ${name(element)} ${element.scrollWidth} > ${element.clientWidth}`);
    if (hasText && clips(style.overflowY) && element.scrollHeight > element.clientHeight + SLACK && style.webkitLineClamp === 'none')
      found.add(`cut off below: ${name(element)} ${element.scrollHeight} > ${element.clientHeight}`);
    if (scrolls(style.overflowX) && element.scrollWidth > element.clientWidth + SLACK && element.tabIndex < 0 &&
        element.querySelector(CONTROLS) === null)
      found.add(`scrolls, but not by keyboard: ${name(element)}`);
  }

  // Every line of text with its box.
  const lines = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (node.data.trim() === '' || parent.closest('script, style, template, option, title, desc') || !isSeen(parent)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const svg = parent.closest('svg');
    for (const box of range.getClientRects()) {
      if (box.width < SLACK || box.height < SLACK) continue;
      if (svg) {
        const frame = svg.getBoundingClientRect();
        if (box.left < frame.left - SLACK || box.right > frame.right + SLACK || box.top < frame.top - 2 || box.bottom > frame.bottom + 2)
          found.add(`outside its chart: ${name(parent)}`);
      }
      const scale = svg && svg.viewBox.baseVal?.width ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
      if (parseFloat(getComputedStyle(parent).fontSize) * scale < LEAST_TEXT) found.add(`small text: ${name(parent)}`);
      const part = visiblePart(box, parent);
      if (part.width > SLACK && part.height > SLACK) lines.push({parent, box: part, fixed: isFixed(parent)});
    }
  }
  lines.sort((one, other) => one.box.top - other.box.top);
  lines.forEach((one, index) => {
    for (let next = index + 1; next < lines.length && lines[next].box.top < one.box.bottom; next++) {
      const other = lines[next];
      if (one.fixed !== other.fixed || one.parent === other.parent) continue;
      const [across, down] = overlap(one.box, other.box);
      if (across > 2 && down > 4) found.add(`text over text: ${name(one.parent)} and ${name(other.parent)}`);
    }
  });

  const controls = elements.filter((one) => one.matches(CONTROLS) && !one.disabled && one.closest('[inert]') === null).map((element) => {
    const boxes = [...element.getClientRects()].map((box) => visiblePart(box, element));
    return {element, fixed: isFixed(element), boxes: boxes.filter((box) => box.width > SLACK && box.height > SLACK)};
  });
  controls.forEach((one, index) => {
    for (const other of controls.slice(index + 1)) {
      if (one.fixed !== other.fixed || one.element.contains(other.element) || other.element.contains(one.element)) continue;
      const crosses = one.boxes.some((box) => other.boxes.some((next) => overlap(box, next).every((size) => size > SLACK)));
      if (crosses) found.add(`controls overlap: ${name(one.element)} and ${name(other.element)}`);
    }
  });
  // A link that is moved out of the window until it has the focus cannot be scrolled to.
  const isAway = ({element}) => { const box = element.getBoundingClientRect(); return box.right <= 0 || box.bottom <= 0; };
  // What is inert takes no input, such as a panel below an open menu.
  const isInert = ({element}) => element.closest('[inert]') !== null;
  for (const {element} of controls.filter((one) => !isAway(one) && !isInert(one))) {
    element.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
    const box = element.getClientRects()[0];
    if (!box || box.width < SLACK || box.height < SLACK) {
      found.add(`a control without size: ${name(element)}`);
      continue;
    }
    const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    if (!top || !(element.contains(top) || top.contains(element) || top.closest('label')?.control === element))
      found.add(`a control is covered: ${name(element)} by ${top ? name(top) : 'the edge of the window'}`);
  }
  for (const [one, left, top] of places) {
    if (one.scrollLeft !== left || one.scrollTop !== top) one.scrollTo({left, top, behavior: 'instant'});
  }
  return [...found];
})()
