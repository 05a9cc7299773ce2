import RTMP
import Support
import Talk

extension FuzzTarget {
    /// An app and a name, one line each, as `connect` and `publish` carry them.
    static let names = FuzzTarget("names", maxLength: 512) { input in
        let text = String(decoding: input.rest, as: UTF8.self)
        let lines = text.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        checkStreamAddress(lines[0], lines.count > 1 ? lines[1] : "")
        checkTalkAddress(lines[0])
    }
}

private func checkStreamAddress(_ app: String, _ name: String) {
    do throws(StreamAddressError) {
        let address = try StreamAddress(app: app, name: name)
        let limits = Limits()
        expect(address.path.utf8.count <= limits.nameBytes + 1 && address.query.utf8.count <= limits.queryBytes + 1, "too long")
        expect(!address.app.contains("/") && !address.app.isEmpty && !address.name.isEmpty, "an app and a name")
        expect(!address.path.unicodeScalars.contains { $0.value < 0x20 || $0 == "?" }, "a control character, or a query")
        expect(NameForm.isNormal(address.path), "a name that has another spelling")
        let components = address.path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
        expect(!components.contains(".."), "a way up")
        expect(components == address.path.split(separator: "/").map(String.init), "a slash that is no character of its own")
        // Splits the address as another client would.
        let query = address.query.isEmpty ? "" : "?\(address.query)"
        do throws(StreamAddressError) {
            expect(try StreamAddress(app: address.app, name: address.name + query) == address, "read again, another address")
        } catch .queryTooLong {
            // The "&" between two queries may exceed the limit.
        } catch {
            fatalError("read again: \(error)")
        }
    } catch {
        expect(!"\(error)".isEmpty, "an error without words")
    }
}

private func checkTalkAddress(_ name: String) {
    do throws(TalkAddressError) {
        let address = try TalkAddress(name)
        expect(address.name == name, "\(address.name) of \(name)")
        if case .voice(let id) = address { expect(id.rawValue.utf8.count <= ParticipantID.maxLength, "too long") }
    } catch {
        expect(!"\(error)".isEmpty, "an error without words")
    }
}
