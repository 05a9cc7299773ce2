internal import Crypto
import Support
import Synchronization

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Tickets of a cluster: any of its servers issues them, and any accepts them. Owned by an ``OneTimeTickets``. Any thread.
///
/// A ticket is its own content, sealed under a key that all servers have: nothing is stored when it is issued. So three things differ from the tickets
/// of a server that is alone:
/// - A ticket works once **on each server**. Each remembers what it has accepted, and does not ask the others.
/// - Its expiry goes by the wall clocks of two servers, which must agree within seconds. A ticket that would be good for more than 90 seconds here is
///   refused. If a clock is set back after a ticket's expiry, the ticket may work once more.
/// - Accepted tickets are counted instead of unused ones, and a restart forgets them.
final class SealedTickets<Holder: TicketHolder>: Sendable {
    /// The sealed part.
    private struct Content {
        let holder: Holder
        /// Milliseconds since 1970.
        let expiresAt: Int64

        init(holder: Holder, expiresAt: Int64) {
            self.holder = holder
            self.expiresAt = expiresAt
        }

        init?(_ bytes: Data) {
            guard let json = try? JSONParser.parse(bytes), let expiresAt = json.integer("expiresAt"),
                let holder = json["holder"].flatMap(Holder.init(ticketContent:))
            else { return nil }
            self.init(holder: holder, expiresAt: expiresAt)
        }

        var text: String {
            JSONValue.object([
                .init(name: "holder", value: .object(self.holder.ticketContent)), .init(name: "expiresAt", value: .integer(self.expiresAt)),
            ]).text
        }
    }

    /// The nonce, which is random and differs for each ticket. Not the text: base64 has several spellings of some bytes.
    private struct TicketID: Hashable {
        let first: UInt64
        let last: UInt32

        init(_ nonce: AES.GCM.Nonce) {
            let bytes = Array(nonce)
            self.first = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
            self.last = bytes.dropFirst(8).prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
        }
    }

    /// Ids accepted within ``memoryMs``.
    private struct Accepted {
        var ids: Set<TicketID> = []
        /// By the hash of the owner, so that the length of its name does not count.
        var perOwner: [Int: Int] = [:]
    }

    private struct State {
        var recent = Accepted()
        /// Those of the ``memoryMs`` before.
        var former = Accepted()
        /// When `recent` becomes `former`, on the steady clock.
        var turnsAt: Int64 = 0
    }

    /// How far the clock of another server may be ahead.
    static var leadMs: Int64 { 30_000 }
    /// An id is remembered for this time at least, and twice this time at most: no accepted ticket is valid for longer.
    static var memoryMs: Int64 { OneTimeTickets<Holder>.lifetimeMs + Self.leadMs }
    /// Most tickets accepted within ``memoryMs``, in total and per owner. An id takes about 30 bytes. An owner also gets an eighth of what is left at
    /// most, so that some owners with many leave room for others; no id may be forgotten to make it.
    static var limit: Int { 100_000 }
    static var limitPerOwner: Int { 10_000 }

    private let key: SymmetricKey
    /// Opens as well.
    private let formerKey: SymmetricKey?
    private let state = Mutex(State())

    init(_ cluster: ClusterKey) {
        self.key = SymmetricKey(data: cluster.key(for: .tickets))
        self.formerKey = cluster.previousKey(for: .tickets).map { SymmetricKey(data: $0) }
    }

    /// Binds a ticket to its kind: one for events opens no channel.
    private static var context: [UInt8] { Array("ticket \(Holder.ticketKind)".utf8) }

    /// Nil when the holder cannot be put into a ticket.
    func issue(to holder: Holder, wallMs: Int64) -> OneTimeTicket? {
        let expiresAt = wallMs + OneTimeTickets<Holder>.lifetimeMs
        do {
            let content = Array(Content(holder: holder, expiresAt: expiresAt).text.utf8)
            guard let sealed = try AES.GCM.seal(content, using: self.key, authenticating: Self.context).combined else { return nil }
            let text = SecretText.base64URL(sealed)
            return text.utf8.count <= OneTimeTicket.longest ? OneTimeTicket(text: text, expiresAt: expiresAt) : nil
        } catch {
            return nil
        }
    }

    /// Nil if the ticket is not of this cluster and kind, has expired, was used here, or too many were.
    func redeem(_ text: String, steadyMs: Int64, wallMs: Int64) -> Holder? {
        guard let box = Self.box(text), let content = self.opened(box), wallMs < content.expiresAt,
            content.expiresAt <= wallMs + Self.memoryMs
        else { return nil }
        let isNew = self.state.withLock { Self.remember(TicketID(box.nonce), content.holder.ticketOwner.hashValue, &$0, steadyMs) }
        return isNew ? content.holder : nil
    }

    /// Ids in memory.
    var remembered: Int { self.state.withLock { $0.recent.ids.count + $0.former.ids.count } }

    private static func box(_ text: String) -> AES.GCM.SealedBox? {
        guard text.utf8.count <= OneTimeTicket.longest else { return nil }
        // RFC 4648 §5 to §4, which is what Foundation reads.
        var base64 = text.utf8.map { $0 == UInt8(ascii: "-") ? UInt8(ascii: "+") : $0 == UInt8(ascii: "_") ? UInt8(ascii: "/") : $0 }
        while base64.count % 4 != 0 { base64.append(UInt8(ascii: "=")) }
        guard let data = Data(base64Encoded: Data(base64)) else { return nil }
        do { return try AES.GCM.SealedBox(combined: data) } catch { return nil }
    }

    private func opened(_ box: AES.GCM.SealedBox) -> Content? {
        for key in [self.key, self.formerKey].compactMap(\.self) {
            // Fails with a key that did not seal the ticket.
            guard let bytes = try? AES.GCM.open(box, using: key, authenticating: Self.context) else { continue }
            return Content(bytes)
        }
        return nil
    }

    /// Whether an owner with `own` of `all` ids may have one more.
    static func hasSpace(own: Int, all: Int) -> Bool { all < self.limit && own < min(self.limitPerOwner, (self.limit - all) / 8 + 1) }

    /// Whether the id is new, and there is room for it.
    private static func remember(_ id: TicketID, _ owner: Int, _ state: inout State, _ nowMs: Int64) -> Bool {
        if nowMs >= state.turnsAt {
            state.former = nowMs < state.turnsAt + self.memoryMs ? state.recent : Accepted()
            state.recent = Accepted()
            state.turnsAt = nowMs + self.memoryMs
        }
        guard !state.recent.ids.contains(id), !state.former.ids.contains(id),
            self.hasSpace(own: state.recent.perOwner[owner, default: 0], all: state.recent.ids.count)
        else { return false }
        state.recent.ids.insert(id)
        state.recent.perOwner[owner, default: 0] += 1
        return true
    }
}
