@testable import LinkTransport

extension FuzzTarget {
    /// The URL of a link, as a room's owner or a redirecting server writes it.
    static let linkURL = FuzzTarget("link-url", maxLength: 512) { input in
        let text = String(decoding: input.rest, as: UTF8.self)
        _ = LinkURL.origin(of: text)
        let url: LinkURL
        do throws(LinkError) {
            url = try LinkURL(parsing: text)
        } catch {
            guard case .badURL(let words) = error else { fatalError("\(error)") }
            expect(!text.contains("@") || !words.contains(text), "the refusal shows a user's name")
            return
        }
        expect((1...65_535).contains(url.port) && !url.app.isEmpty && !url.stream.isEmpty, "port, app and stream")
        // librtmp reads options of its own after a space.
        expect(!"\(url.tcUrl)/\(url.stream)".utf8.contains { $0 <= 0x20 || $0 >= 0x7F }, "a space or a control character")
        do throws(LinkError) {
            expect(try LinkURL(parsing: "\(url.origin)/\(url.app)/\(url.stream)") == url, "written and read, another address")
        } catch {
            fatalError("written and read: \(error)")
        }
        let shown = url.redacted.dropFirst("\(url.origin)/\(url.app)/".count)
        expect(url.stream.utf8.count < 4 || url.stream.contains("*") || !shown.contains(url.stream), "\(shown) shows \(url.stream)")
        expect(url.scrub("no stream \(url.stream) here").count <= 200, "too long")
    }
}
