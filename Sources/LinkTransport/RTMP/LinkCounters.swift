internal import Synchronization

/// Counts a link's traffic over all its connections; any thread may read.
final class LinkCounters: Sendable {
    struct Numbers: Sendable {
        var bytesIn: UInt64 = 0
        var bytesOut: UInt64 = 0
        var framesIn: UInt64 = 0
        var framesOut: UInt64 = 0
        var malformed: UInt64 = 0
        var remote: String?
        var tls: String?
    }

    private let numbers = Mutex(Numbers())

    var now: Numbers { self.numbers.withLock { $0 } }

    func received(bytes: Int) { self.numbers.withLock { $0.bytesIn &+= UInt64(bytes) } }
    func sent(bytes: Int) { self.numbers.withLock { $0.bytesOut &+= UInt64(bytes) } }
    func receivedFrame() { self.numbers.withLock { $0.framesIn &+= 1 } }
    func sentFrame() { self.numbers.withLock { $0.framesOut &+= 1 } }
    func receivedMalformed() { self.numbers.withLock { $0.malformed &+= 1 } }

    /// Records the connection; pass nil when it is over.
    func connected(_ remote: String?, tls: String?) {
        self.numbers.withLock { numbers in
            numbers.remote = remote
            numbers.tls = tls
        }
    }
}
