from daemon.core.people import ROLES, USUAL, may, roles_with


def test_the_table_of_page_md():
    """Four roles; each may what the one before may, but a seller sees no reports and a reader sells nothing. A key without a role is a manager, as keys were."""
    rights = ("look", "certify", "report", "close", "administer")
    table = {role: [right for right in rights if may(role, right)] for role in ROLES}
    assert table == {
        "seller": ["look", "certify"],
        "reader": ["look", "report"],
        "manager": ["look", "certify", "report", "close"],
        "technician": ["look", "certify", "report", "close", "administer"],
    }
    assert (roles_with("close"), USUAL) == (("manager", "technician"), "manager")
