/// Linux's numbers of TCP options and socket queries (linux/tcp.h, linux/sockios.h), each declared once.
///
/// C libraries of other systems lack most of them. All are advisory: where the system does not know one, the server works without it.
package enum LinuxSocket {
    /// `TCP_INFO`: the state of a connection or listener.
    package static let info: CInt = 11
    /// `TCP_QUICKACK`: acknowledges received data now.
    package static let quickAcknowledgement: CInt = 12
    /// `TCP_USER_TIMEOUT`: milliseconds that sent data may stay unacknowledged.
    package static let userTimeout: CInt = 18
    /// `TCP_NOTSENT_LOWAT`: bytes that may wait in the kernel unsent before the socket counts as full.
    package static let notSentLowWater: CInt = 25
    /// `SIOCOUTQNSD`: asks for the bytes that wait unsent.
    package static let unsentBytes: UInt = 0x894B
}
