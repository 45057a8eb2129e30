//! What `-netinfo help` tells. Data only.

/// The columns, the words that may follow, examples.
pub(crate) const HELP: &str = "\
-netinfo [level [outonly]] | help

The peers of a node as a table, made from the answers to getpeerinfo and getnetworkinfo. It is for people: its form may change.

level    what is shown (default: 0; above 4 is as 4)
         0  how many peers there are by network and direction, and the addresses that the node tells of itself
         1  that, and before it a line for each peer
         2  as 1, with the peer's address
         3  as 1, with the peer's version
         4  as 1, with both
outonly  (or \"o\", only behind a level above 0) list outbound peers alone
help     (or \"h\") this text

The lines are sorted by direction, then by the shortest ping. Their columns:

  <->      \"in\": the peer connected to the node; \"out\": the node to the peer
  type     \"full\" relays everything; \"block\" blocks alone; \"manual\" asked for by -addnode, -connect or addnode;
           \"feeler\" tests an address; \"addr\" asks for addresses; \"priv\" hands over a transaction privately
  net      the network: ipv4, ipv6, onion, i2p, cjdns, or npr (not publicly routable)
  serv     services: n NETWORK, b BLOOM, w WITNESS, c COMPACT_FILTERS, l NETWORK_LIMITED, 2 P2P_V2, u an unknown one
  v        version of the transport: 2 is encrypted
  mping    shortest ping, in milliseconds
  ping     last ping, in milliseconds
  send     seconds since something was sent to the peer
  recv     seconds since something came from it
  txn      minutes since it sent a transaction that was new; \"*\": no transactions are exchanged
  blk      minutes since it sent a block that was new
  hb       compact blocks without asking: \".\" asked for by the node, \"*\" asked for by the peer
  addrp    addresses that came from the peer; \".\": no addresses are exchanged
  addrl    addresses that came too fast and were dropped
  age      minutes since it connected
  asmap    the autonomous system of the peer, where the node maps them
  id       number of the peer since the node began

Examples:

  lydian-cli -netinfo
  lydian-cli -netinfo 4 outonly
  watch --interval 1 --no-title lydian-cli -netinfo 4";
