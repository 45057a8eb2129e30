//! The text of `-netinfo help`. Data only.

/// The arguments, the columns, and some examples.
pub(crate) const HELP: &str = "\
-netinfo [level [outonly]] | help

Prints the peers of a node as a table, from the results of getpeerinfo and getnetworkinfo. The format is meant for
people and may change.

level    the level of detail (default: 0; a value above 4 means 4)
         0  the number of peers by network and direction, and the node's local addresses
         1  the same, preceded by a line for each peer
         2  like 1, with the peer's address
         3  like 1, with the peer's version
         4  like 1, with both
outonly  (or \"o\", only after a level above 0) list outbound peers only
help     (or \"h\") print this text

The lines are sorted by direction, then by shortest ping. Columns:

  <->      \"in\": inbound, \"out\": outbound
  type     \"full\": full relay; \"block\": block relay only; \"manual\": added by -addnode, -connect or addnode;
           \"feeler\": tests an address; \"addr\": fetches addresses; \"priv\": broadcasts a transaction privately
  net      the network: ipv4, ipv6, onion, i2p, cjdns, or npr (not publicly routable)
  serv     services: n NETWORK, b BLOOM, w WITNESS, c COMPACT_FILTERS, l NETWORK_LIMITED, 2 P2P_V2, u unknown
  v        version of the transport: 2 is encrypted
  mping    shortest ping, in milliseconds
  ping     last ping, in milliseconds
  send     seconds since the last message sent to the peer
  recv     seconds since the last message received from it
  txn      minutes since it last sent a new transaction; \"*\": no transactions are relayed to it
  blk      minutes since it last sent a new block
  hb       high-bandwidth compact block relay: \".\" the node selected the peer, \"*\" the peer selected the node
  addrp    addresses received from the peer and processed; \".\": no address relay
  addrl    addresses dropped because of rate limiting
  age      minutes since it connected
  asmap    the autonomous system of the peer, if the node maps addresses to them
  id       number of the peer since the node started

Examples:

  lydian-cli -netinfo
  lydian-cli -netinfo 4 outonly
  watch --interval 1 --no-title lydian-cli -netinfo 4";
