import Foundation

/// Decoded JSON, read leniently: tests fail on a wrong value, not on a missing key.
package struct JSON: @unchecked Sendable {
    // Foundation's JSON values are immutable once parsed.
    package let value: Any?
    package init(_ value: Any?) { self.value = value }
    package subscript(key: String) -> JSON { JSON((self.value as? [String: Any])?[key]) }
    package subscript(index: Int) -> JSON {
        guard let list = self.value as? [Any], list.indices.contains(index) else { return JSON(nil) }
        return JSON(list[index])
    }
    package var count: Int { (self.value as? [Any])?.count ?? 0 }
    package var string: String? { self.value as? String }
    package var int: Int? { (self.value as? NSNumber)?.intValue }
    package var double: Double? { (self.value as? NSNumber)?.doubleValue }
    package var bool: Bool? { (self.value as? NSNumber)?.boolValue }
    package var isNull: Bool { self.value is NSNull }
    package var names: Set<String> { Set((self.value as? [String: Any] ?? [:]).keys) }
    package var list: [JSON] { (self.value as? [Any])?.map(JSON.init) ?? [] }
    /// Milliseconds since 1970 of a time such as "2026-01-31T12:00:00.000Z"; -1 for anything else.
    package var ms: Int64 {
        let format = ISO8601DateFormatter()
        format.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
        return self.string.flatMap(format.date(from:)).map { Int64(($0.timeIntervalSince1970 * 1_000).rounded()) } ?? -1
    }
}
