package import Foundation

/// A server's answer to one HTTP request. A value.
package struct HTTPAnswer: Sendable {
    package let status: Int
    /// Names in lower case.
    package let headers: [String: String]
    package let body: Data
    package var contentType: String? { self.headers["content-type"] }
    package var text: String { String(decoding: self.body, as: UTF8.self) }
    package func json() throws -> JSON { JSON(try JSONSerialization.jsonObject(with: self.body)) }

    package init(status: Int, headers: [String: String], body: Data) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

/// The token that a server's first start made.
package enum TokenFile {
    package static func read(_ directory: String) throws -> String {
        try String(contentsOfFile: "\(directory)/admin-token", encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
